"""Agents played by a language model: `loop` runs the talk, `tools` act in the sandbox, `prompts` say what the job is."""
