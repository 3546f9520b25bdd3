module windfall.dev/tests/pause

go 1.26
