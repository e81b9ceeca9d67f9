module github.com/assay-llm/assay/scripts/mkgguf

go 1.26.8
