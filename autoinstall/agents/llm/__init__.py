"""Agents played by a language model: `loop` runs the conversation, `tools` act in the sandbox, `prompts` say the job."""
