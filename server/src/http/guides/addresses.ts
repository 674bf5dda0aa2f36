// Where the guides are.

/** The list of all guides, and the search in them: `?q=WORDS`. */
export const GUIDES_PATH = '/docs'
