"""The interview room: questions against a clock, attempts that are kept, and repeats at the right time.

question    one question as it is asked: text, hints, judge, working; the same for the terminal and the notebook
idea, ideas what is counted; everything that can be asked, and in which kinds
kinds       the kinds of question: choices, bands, tables, traces, scenarios, flash facts, errors to spot, chains,
            open cases, code
letters     answers that are letters, in columns
examples    how an answer is written, in figures that are nobody's answer
clock       an honest stopwatch, for one question
history     attempts in one SQLite file, safe against a killed process and two windows (moving: out of it and into it)
trouble     what is wrong with a history file, in a sentence
schedule    when an idea is due again: FSRS over days, a short ladder within a session
plan        which questions a mode asks: warm-up, sprint, mock, weak, today (conversations: a mock's cases and chains)
code_file   a task in code as the reader's own file
preparation what each day until an interview holds
session     one sitting, whichever door it is held in
after       what goes with an answer beside the verdict
progress    what the attempts say (trend: whether it gets better; mistakes: slips in sentences)
cards       ideas as a table and as a deck for Anki
terminal    the light door; notebook: the same in JupyterLab
"""
