"""PHP projects: packages, Debian's for them, goals and plans."""

import json
from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.php import PhpEcosystem
from autoinstall.agents.rules.ecosystems.php.plan import package_names
from autoinstall.agents.rules.ecosystems.php.project import classes_of, needs_of, project_of
from autoinstall.errors import RegistryUnreachable
from tests.unit.rules_contexts import context_of, goals_of, plan_of

COMPOSER = {
    "name": "o/thing",
    "require": {"php": ">=7.4", "ext-gmp": "*", "ext-json": "*", "psr/log": "^1.0"},
    "require-dev": {"phpunit/phpunit": "^9.5", "friendsofphp/php-cs-fixer": "^3"},
    "autoload": {"psr-4": {"O\\": "src/"}},
    "bin": ["bin/thing"],
}
FILES = {
    "composer.json": json.dumps(COMPOSER),
    "phpunit.xml.dist": "<phpunit bootstrap='vendor/autoload.php'><testsuites/></phpunit>",
    "src/Thing.php": "<?php\nnamespace O;\n\nfinal class Thing\n{\n    public const VERSION = '2.1.0';\n}\n",
    "src/Sub/Other.php": "<?php\nnamespace O\\Sub;\n\ninterface Other {}\n",
    "src/Old/Name.php": "<?php\nclass Old_Name {}\n",
    "tests/ThingTest.php": "<?php\nclass ThingTest extends TestCase {}\n",
    "bin/thing": "#!/usr/bin/env php\n<?php // --help\n",
}
POLICY = "\n".join(
    f"{name}:\n  Installed: (none)\n  Candidate: {version}\n  Version table:"
    for name, version in (("php-psr-log", "1.1.4-2"), ("phpunit", "9.6.7-1+deb12u1"))
)
SILENT = (6, "Could not resolve host")


def test_what_is_needed(tmp_path: Path) -> None:
    context = context_of(tmp_path, FILES)
    project = project_of(context.tree)
    assert project is not None
    needs = {need.name: need for need in needs_of(project)}
    assert needs["psr/log"].hard
    assert needs["phpunit/phpunit"].hard
    assert needs["phpunit/phpunit"].tool
    assert not needs["friendsofphp/php-cs-fixer"].hard
    assert [item.name for item in classes_of(context.tree, project, 5)] == ["O\\Thing", "Old_Name", "O\\Sub\\Other"]


@pytest.mark.parametrize(
    ("name", "package"),
    [("psr/log", "php-psr-log"), ("twig/twig", "php-twig"), ("phpunit/phpunit", "phpunit"), ("o/php-x_y", "php-o-x-y")],
)
def test_names_of_packages(name: str, package: str) -> None:
    assert package in list(package_names(name))


def test_goals(tmp_path: Path) -> None:
    goals = goals_of(PhpEcosystem(), context_of(tmp_path, FILES), {"timeout 15 bash": ""})
    assert {"vendor/bin/phpunit", "vendor/bin/phpunit tests/ThingTest.php", "php bin/thing --help"} <= set(goals)
    assert "at least 3" in next(goal.description for command, goal in goals.items() if "php -l" in command)
    assert '"2.1.0"' in next(goal.description for command, goal in goals.items() if "O\\Thing::VERSION" in command)
    assert '"gmp loaded"' in next(goal.description for command, goal in goals.items() if "extension_loaded" in command)
    assert "at least 2 classes" in goals["composer dump-autoload --dev --optimize --no-scripts"].description


def test_tests_without_a_configuration(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if not name.startswith("phpunit")}
    goals = goals_of(PhpEcosystem(), context_of(tmp_path, files), {"timeout 15 bash": ""})
    assert "vendor/bin/phpunit --bootstrap=vendor/autoload.php tests" in goals


def test_debians_libraries_are_linked(tmp_path: Path) -> None:
    plan = plan_of(PhpEcosystem(), context_of(tmp_path, FILES), {"apt-cache policy": POLICY, "timeout 15 bash": SILENT})
    packages, linked, loader = plan.steps
    assert "php-psr-log" in packages.command
    assert "php-gmp" in packages.command
    assert "php-json" not in packages.command
    assert "psr/log=1.1.4=php-psr-log" in linked.command
    assert "installed.json" in linked.command
    assert loader.command.startswith("composer dump-autoload --dev")
    online = plan_of(PhpEcosystem(), context_of(tmp_path, FILES), {"apt-cache policy": POLICY, "timeout 15 bash": ""})
    assert any(step.command.startswith("composer install") for step in online.steps)


def test_a_test_runner_of_a_later_generation(tmp_path: Path) -> None:
    composer = {**COMPOSER, "require-dev": {"phpunit/phpunit": "^10.5 || ^11.0"}}
    context = context_of(tmp_path, {**FILES, "composer.json": json.dumps(composer)})
    with pytest.raises(RegistryUnreachable, match=r"Packagist.*phpunit/phpunit.*Debian has 9\.6\.7"):
        plan_of(PhpEcosystem(), context, {"apt-cache policy": POLICY, "timeout 15 bash": SILENT})
