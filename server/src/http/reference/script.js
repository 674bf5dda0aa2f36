// What the reference can do beyond being read: search as one types, the place in the list, a copied example. Without it
// the page is whole.
const search = document.querySelector('#search')
const told = document.querySelector('#search-told')
const toggle = document.querySelector('#toggle')
const nav = document.querySelector('.side nav')
const links = [...nav.querySelectorAll('a[data-text]')]
const sections = [...nav.querySelectorAll(':scope > ul > li')]

search.closest('.search').hidden = false

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  let count = 0
  for (const link of links) {
    const is_found = words.every((word) => link.dataset.text.includes(word))
    link.parentElement.hidden = !is_found
    if (is_found) count++
  }
  for (const section of sections) {
    section.hidden = words.length > 0 && section.querySelector('li:not([hidden])') === null
  }
  told.textContent =
    words.length === 0 ? '' : count === 0 ? 'Nothing is called so.' : `${count} found; arrow keys and Enter`
}

function shownLinks() {
  return links.filter((link) => !link.parentElement.hidden)
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
  const is_in_list = document.activeElement === search || links.includes(document.activeElement)
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
nav.addEventListener('click', (event) => {
  if (event.target.closest('a') !== null) toggle.checked = false
})

const link_of = new Map(links.map((link) => [link.hash.slice(1), link]))
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
