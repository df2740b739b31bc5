from mlebench.cli import main

main()
