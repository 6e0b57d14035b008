"""Agents by role. Who plays which is a setting; the contracts are in `contract`, the families in folders beside it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoinstall.agents.contract import GoalSetter, Installer, Judge
    from autoinstall.settings import Settings

# The families are imported where they are asked for: whoever only needs the contracts does not load them.


def goal_setter(settings: "Settings") -> "GoalSetter":
    """The goal-setter of the settings."""
    from autoinstall.agents.rules.goal_setter import RulesGoalSetter

    return RulesGoalSetter(settings)


def installer(settings: "Settings", attempt: int = 1) -> "Installer":
    """The installer of the settings for an attempt (1-based); the last of their list serves all later ones."""
    from autoinstall.agents.rules.installer import RulesInstaller

    names = settings.agents.installer
    families = {"rules": RulesInstaller}
    return families[names[min(attempt, len(names)) - 1]](settings, judge(settings))


def judge(settings: "Settings") -> "Judge":
    """The judge of the settings."""
    from autoinstall.agents.rules.judge import RulesJudge

    families = {"rules": RulesJudge}
    return families[settings.agents.judge]()
