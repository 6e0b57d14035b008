{ "targets": [{ "target_name": "shout", "sources": ["shout.c"] }] }
