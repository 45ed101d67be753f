"""The LLM judge: prompt and contract, client, attempt store, rounds, ledger and labels."""
