"""The table of optimizers: a row for each, from which follow its names, arguments, documents and tests.

* `row`: the columns; `descent`, `moments`: the rows.
* `transforms`: the transforms for chains; `presets`: combinations of optimizers.
"""
