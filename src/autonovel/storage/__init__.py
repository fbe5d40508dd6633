"""Run folders on disk: every write, the documents and journals made of writes, and the lock."""
