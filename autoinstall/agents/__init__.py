"""Agents by role. Who plays which is a setting; the contracts are in `contract`, the families in folders beside it."""

from typing import TYPE_CHECKING

from autoinstall.errors import BadInput

if TYPE_CHECKING:
    from autoinstall.agents.contract import GoalSetter, Installer, Judge
    from autoinstall.settings import ModelSettings, Settings

# The families are imported where they are asked for: whoever only needs the contracts does not load them.


def goal_setter(settings: "Settings") -> "GoalSetter":
    """The goal-setter of the settings."""
    if settings.agents.goal_setter == "llm":
        from autoinstall.agents.llm.goal_setter import LlmGoalSetter
        from autoinstall.agents.rules.judge import RulesJudge
        from autoinstall.models.registry import model_for

        return LlmGoalSetter(settings, model_for(settings, settings.agents.goal_setter_model), RulesJudge())
    from autoinstall.agents.rules.goal_setter import RulesGoalSetter

    return RulesGoalSetter(settings)


def installer(settings: "Settings", attempt: int = 1) -> "Installer":
    """The installer of the settings for an attempt (1-based); the last of their list serves all later ones.

    Whichever it is, it checks itself by the rules: a model's doubts come with the verdict.
    """
    from autoinstall.agents.rules.judge import RulesJudge

    family, model = installer_of(settings, attempt)
    if family == "llm":
        from autoinstall.agents.llm.installer import LlmInstaller
        from autoinstall.models.registry import model_for

        return LlmInstaller(settings, model_for(settings, model), RulesJudge())
    from autoinstall.agents.rules.installer import RulesInstaller

    return RulesInstaller(settings, RulesJudge())


def judge(settings: "Settings") -> "Judge":
    """The judge of the settings."""
    from autoinstall.agents.rules.judge import RulesJudge

    if settings.agents.judge == "llm":
        from autoinstall.agents.llm.judge import LlmJudge
        from autoinstall.models.registry import model_for

        return LlmJudge(model_for(settings, settings.agents.judge_model), RulesJudge())
    return RulesJudge()


def installer_of(settings: "Settings", attempt: int) -> tuple[str, str]:
    """Family of the installer of an attempt (1-based), and the name that the settings give its model; empty for the
    default one and for families without a model."""
    families, models = settings.agents.installer, settings.agents.installer_models
    family = families[min(attempt, len(families)) - 1]
    if family != "llm" or not models:
        return family, ""
    return family, models[min(attempt, len(models)) - 1]


def next_by_another(settings: "Settings", attempt: int) -> int | None:
    """The first attempt after this one that another agent, or another model, makes; None where there is none."""
    later = range(attempt + 1, settings.verification.attempts + 1)
    return next((number for number in later if installer_of(settings, number) != installer_of(settings, attempt)), None)


def plays_llm(settings: "Settings") -> bool:
    """Whether any role is played by a model."""
    return bool(_roles(settings))


def models_of(settings: "Settings") -> tuple["ModelSettings", ...]:
    """The models that play a role: goal-setter, installer attempt by attempt (each once in a row), judge."""
    return tuple(_settings_of(settings, name) for _, name in _roles(settings))


def check_models(settings: "Settings") -> None:
    """See that every role that a model plays has one.

    Raises:
        BadInput: one has none, or its settings cannot be used.
        EndpointUnsuitable: the endpoint wants a key, and there is none.
    """
    for role, name in _roles(settings):
        from autoinstall.models.registry import model_for

        try:
            model_for(settings, name)
        except BadInput as error:
            raise BadInput(
                f"The {role} is to be played by a model: {error.message}",
                hint=f"{error.hint} Or use --agent rules, which needs no model.".strip(),
            ) from None


def team_of(settings: "Settings") -> str:
    """Who plays the roles, for people and for comparisons: `rules`, `llm:NAME`, or role by role where they differ."""
    agents = settings.agents
    names = {
        "goals": _player(settings, agents.goal_setter, agents.goal_setter_model),
        "set-up": ", ".join(_player(settings, *installer_of(settings, number)) for number in _changes(settings)),
        "judge": _player(settings, agents.judge, agents.judge_model),
    }
    if len(set(names.values())) == 1:
        return names["goals"]
    return "; ".join(f"{role} {name}" for role, name in names.items())


def _player(settings: "Settings", family: str, model: str) -> str:
    return f"llm:{_settings_of(settings, model).name}" if family == "llm" else family


def _changes(settings: "Settings") -> tuple[int, ...]:
    """The attempts at which another agent takes over, the first included."""
    found = [1]
    while (number := next_by_another(settings, found[-1])) is not None:
        found.append(number)
    return tuple(found)


def _roles(settings: "Settings") -> tuple[tuple[str, str], ...]:
    """(role, name of its model) of every role that a model plays."""
    agents = settings.agents
    found = [("goal-setter", agents.goal_setter_model)] if agents.goal_setter == "llm" else []
    for number in _changes(settings):
        family, model = installer_of(settings, number)
        if family == "llm":
            found.append((f"installer of attempt {number}", model))
    return (*found, *((("judge", agents.judge_model),) if agents.judge == "llm" else ()))


def _settings_of(settings: "Settings", name: str) -> "ModelSettings":
    from autoinstall.models.registry import resolve

    return resolve(settings, name)[0]
