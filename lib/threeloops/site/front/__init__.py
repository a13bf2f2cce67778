"""What somebody meets who has never been here: the first page, and what other sites and search engines are told.

edition     version, date, licence, address and source repository, as CITATION.cff says them
page        the first page
printed     the first pages of a chapter on paper
far         how far the reader is, by part and chapter
heads       description, picture and address in the head of every page; sitemap; the page for what is not there
"""
