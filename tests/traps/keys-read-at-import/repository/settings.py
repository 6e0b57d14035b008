import os

KEY = os.environ['SERVICE_KEY']
URL = os.environ['SERVICE_URL']
