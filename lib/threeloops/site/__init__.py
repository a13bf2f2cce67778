"""The book as pages that need no server: `book.py site` makes them from the committed notebooks. Of their cells it runs
those that draw, to draw them for the pages (drawn); every other result stands as it is in the notebook.

npm             scripts from outside, fetched once at set-up and known by their hashes
parts, links    a chapter cut into pages; where its links lead
cells, cards    what a cell becomes; a question as a card
behind          what stands behind a prediction
chapters, drill_sets, words, papers     the pages: parts, drill sets, terms, everything else but the first
mathematics     formulas, set while the pages are built
predictions     a number that is asked for before it is shown
explorers       a picture that moves, as it is read without a script
answering, exploring, remembering, wasm      what runs in the reader's browser: questions put, judged and
                remembered, pictures moved by the book's own Python
functions       functions that are written on a page, and tried there
serving         the page that sizes a service
judged          questions with their answers as data, so that a plain answer does not wait for Python
running         code of the chapters that is run in the page, and what it needs
finding         what a reader looks for, found as it is typed
printing, pictures              the chapters as PDFs; pictures packed
drawn       pictures as text, and for a phone
rehearsal   the interview room on a page
epub        the whole book as one EPUB
offline         the book kept in a browser, an edition at a time
front           the first page, and what the head of each page tells search engines and whoever passes it on
lean            one style sheet and one script for all pages, of what they use
repairs, head   what the theme leaves undone for those who hear a page, and where a script does not come
build, serve    all of it, into one folder; and shown
"""
