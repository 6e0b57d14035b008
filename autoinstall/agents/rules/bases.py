"""Which base a repository is set up on, where neither its row nor the settings name one."""

import logging

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, Selective
from autoinstall.agents.rules.ecosystems import all_ecosystems
from autoinstall.agents.rules.goal_setter import source_shares
from autoinstall.errors import ImageUnavailable
from autoinstall.languages import language_of
from autoinstall.sandbox.catalogue import DEFAULT, catalogue
from autoinstall.sandbox.contract import SandboxProvider, Snapshot
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Value

_logger = logging.getLogger(__name__)


class BaseChoice(Value):
    """A name of the catalogue, or an image reference, and why it is that one; no reason where it is the usual one."""

    name: str
    reason: str = ""


def choose_base(repository: Repository, tree: Tree, settings: Settings) -> BaseChoice:
    """The base of the settings for the repository's language, else the default one, unless what the repository says of
    versions rules it out and another of the catalogue has them."""
    language = language_of(tree)
    if language in settings.bases:
        return BaseChoice(name=settings.bases[language], reason=f"the settings name it for {language}")
    if settings.base_image != DEFAULT:
        return BaseChoice(name=settings.base_image)
    detected = [ecosystem for ecosystem in all_ecosystems() if ecosystem.detect(tree)]
    shares = source_shares(tree, detected)
    main = max(detected, key=lambda ecosystem: shares[ecosystem.name], default=None)
    if not isinstance(main, Selective):
        return BaseChoice(name=DEFAULT)
    context = Context(repository=repository, tree=tree)
    reason = ""
    for base in catalogue().bases:
        has_interpreters = settings.interpreters is not None and base.interpreters
        objection = main.objection(context, base, has_interpreters=has_interpreters)
        if not objection:
            return BaseChoice(name=base.name, reason=reason)
        reason = reason or objection
    return BaseChoice(name=DEFAULT)


def ensure_chosen(provider: SandboxProvider, repository: Repository, tree: Tree, settings: Settings) -> Snapshot:
    """The chosen base on the engine, or the default one where that of the catalogue is not to be had here.

    Raises:
        As `SandboxProvider.ensure_base`.
    """
    choice = choose_base(repository, tree, settings)
    try:
        base = provider.ensure_base(choice.name)
    except ImageUnavailable as error:
        if choice.name in (settings.base_image, *settings.bases.values()):
            raise
        _logger.warning("Base %s (%s) is not to be had: %s", choice.name, choice.reason, error.message)
        return provider.ensure_base(settings.base_image)
    if choice.reason:
        _logger.info("Base %s: %s.", choice.name, choice.reason)
    return base
