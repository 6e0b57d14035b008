"""Language models behind one contract: an OpenAI-compatible endpoint, and a scripted one that ships for tests."""
