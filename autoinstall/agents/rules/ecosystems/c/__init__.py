"""C and C++ projects built by autotools, CMake or Meson; plain Makefiles are the `make` ecosystem's."""

from autoinstall.agents.rules.ecosystems.c.ecosystem import CEcosystem

__all__ = ["CEcosystem"]
