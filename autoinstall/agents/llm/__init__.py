"""Agents played by a language model: `loop` runs the talk, `tools` act in the sandbox, `prompts` say what to do."""
