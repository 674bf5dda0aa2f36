// What the reference can do beyond being read: search as one types, the place in the list, a copied example. Without it
// the page is whole.
const search = document.querySelector('#search')
const result_text = document.querySelector('#search-result')
const found = document.querySelector('#found')
const toggle = document.querySelector('#toggle')
const nav = document.querySelector('.side nav')
const links = [...nav.querySelectorAll('a[data-id]')]

search.closest('.search').hidden = false
leadToOperation()
addEventListener('hashchange', leadToOperation)

// All operations were on one page once: an address of that time goes on to the page that has the operation.
function leadToOperation() {
  const link = document.getElementById(location.hash.slice(1))?.closest('ul.operations > li')?.querySelector('a')
  if (link) location.replace(link.href)
}

// `createGame` -> create, Game: where a word of a name begins.
function wordsOf(text) {
  return text
    .split(/[^A-Za-z0-9]+|(?=[A-Z])/)
    .filter(Boolean)
    .map((word) => word.toLowerCase())
}

const entries = links.map((link) => {
  const { id, path, text } = link.dataset
  const name = id.slice(id.lastIndexOf('.') + 1)
  return {
    link,
    names: [id, name, path].map((one) => one.toLowerCase()),
    words: wordsOf(`${id} ${path}`),
    all: `${id} ${path} ${text}`.toLowerCase(),
  }
})

// The smaller the better: an exact name, the beginning of one, beginnings of words in names, anything else.
function rankOf({ names, words, all }, query) {
  const asked = query.split(/\s+/)
  if (names.includes(query)) return 0
  if (names.some((name) => name.startsWith(query))) return 1
  if (asked.every((one) => words.some((word) => word.startsWith(one)))) return 2
  return asked.every((one) => all.includes(one)) ? 3 : null
}

function find() {
  const query = search.value.trim().toLowerCase()
  const ranked = query === '' ? [] : entries.map(({ link, ...entry }) => ({ link, rank: rankOf(entry, query) }))
  const hits = ranked.filter(({ rank }) => rank !== null).sort((a, b) => a.rank - b.rank)
  found.replaceChildren(...hits.map(({ link }) => itemOf(link)))
  found.hidden = query === ''
  result_text.textContent =
    query === '' ? '' : hits.length === 0 ? 'Nothing is called so.' : `${hits.length} found; arrow keys and Enter`
}

// Beside its section's name an operation is called by its last word; among others it needs its whole name.
function itemOf(link) {
  const item = document.createElement('li')
  const copy = link.cloneNode(true)
  copy.removeAttribute('aria-current')
  copy.firstElementChild.replaceChildren(
    ...link.dataset.id.split(/(?<=\.)|(?=[A-Z])/).flatMap((word) => [document.createElement('wbr'), word]),
  )
  item.append(copy)
  return item
}

function shownLinks() {
  return found.hidden ? links : [...found.querySelectorAll('a')]
}

function move(by) {
  const shown = shownLinks()
  const at = shown.indexOf(document.activeElement)
  const next = at === -1 ? (by > 0 ? 0 : shown.length - 1) : at + by
  if (next < 0) search.focus()
  else shown[next]?.focus()
}

search.addEventListener('input', find)
search.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') shownLinks()[0]?.click()
})
document.addEventListener('keydown', (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return
  const is_in_list = document.activeElement === search || shownLinks().includes(document.activeElement)
  if (event.key === '/' && document.activeElement !== search) {
    event.preventDefault()
    toggle.checked = true
    search.focus()
    search.select()
  } else if (is_in_list && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
    event.preventDefault()
    move(event.key === 'ArrowDown' ? 1 : -1)
  } else if (event.key === 'Escape') {
    search.value = ''
    find()
    toggle.checked = false
  }
})
// Over the narrow page the list lies above what was chosen in it.
for (const list of [nav, found]) {
  list.addEventListener('click', (event) => {
    if (event.target.closest('a') !== null) toggle.checked = false
  })
}

const link_of = new Map(links.map((link) => [link.dataset.id, link]))
// The list begins where the page is. scrollIntoView would move the page too.
const first = links.find((link) => link.pathname === location.pathname)
if (first !== undefined) {
  const down = first.getBoundingClientRect().top - nav.getBoundingClientRect().top
  nav.scrollTop = down - nav.clientHeight / 2
}
let current = null
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = link_of.get(target.id)
      if (!isIntersecting || link === undefined || link === current) continue
      current?.removeAttribute('aria-current')
      current = link
      link.setAttribute('aria-current', 'location')
      if (document.activeElement !== search) link.scrollIntoView({ block: 'nearest', behavior: 'instant' })
    }
  },
  { rootMargin: '-10% 0px -80% 0px' },
)
for (const article of document.querySelectorAll('article[id]')) watcher.observe(article)

for (const button of document.querySelectorAll('button[data-copy]')) {
  // The browser gives the clipboard to secure pages only; on others the button would do nothing.
  if (navigator.clipboard === undefined) continue
  button.hidden = false
  button.addEventListener('click', async () => {
    const text = button.closest('figure').querySelector('pre').textContent
    const is_copied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
    button.textContent = is_copied ? 'Copied' : 'Not copied'
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 1500)
  })
}
