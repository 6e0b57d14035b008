from setuptools import setup

setup(name='legacy', version='1.0', py_modules=['app'], use_2to3=False, tests_require=['pytest'])
