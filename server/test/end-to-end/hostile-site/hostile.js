// What a hosted page tries, each attempt a function that isolation.test.ts calls and that returns the outcome. It runs
// in the browser, as uploaded.

/** What `look` answers, or the name of the error. */
function attempt(look) {
  try {
    return String(look())
  } catch (error) {
    return error.name
  }
}

async function outcome(promise) {
  return promise.then(
    () => 'done',
    (error) => error.name,
  )
}

function load(name, src) {
  return new Promise((resolve) => {
    const element = document.createElement(name)
    element.onload = () => resolve('loaded')
    element.onerror = () => resolve('refused')
    element.src = src
    document.body.append(element)
  })
}

/** Sets cookies of the names for this host and for each of the domains. */
function toss(names, domains) {
  for (const name of names) {
    // biome-ignore lint/suspicious/noDocumentCookie: the old way works in every browser, so it is what is tried
    document.cookie = `${name}=tossed; path=/`
    // biome-ignore lint/suspicious/noDocumentCookie: as above
    for (const domain of domains) document.cookie = `${name}=tossed; path=/; domain=${domain}`
  }
}

/** Opens the address in a frame and reaches into it. */
async function reachInto(address) {
  const frame = document.createElement('iframe')
  const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
  frame.src = address
  document.body.append(frame)
  await loaded
  attempt(() => {
    document.domain = location.hostname.split('.').slice(1).join('.')
  })
  return {
    storage: attempt(() => frame.contentWindow.localStorage.length),
    cookies: attempt(() => frame.contentWindow.document.cookie),
    code: attempt(() => frame.contentWindow.eval('1')),
  }
}

/** What is to be seen in this page's own stores. */
async function ownStores() {
  return {
    cookies: document.cookie,
    storage: localStorage.length,
    session: sessionStorage.length,
    databases: (await indexedDB.databases()).length,
  }
}

/** Asks for what the main domain answers to a person who is logged in, in all the ways there are. */
async function ask(main) {
  return {
    page: await outcome(fetch(main)),
    cookies: await outcome(fetch(`${main}/openapi.json`, { credentials: 'include' })),
    opaque: await outcome(fetch(`${main}/openapi.json`, { mode: 'no-cors', credentials: 'include' })),
    token: await outcome(fetch(`${main}/auth/tokens/identity`, { method: 'POST', credentials: 'include' })),
    script: await load('script', `${main}/openapi.json`),
    image: await load('img', `${main}/docs/errors/API_NOT_FOUND`),
  }
}

async function frame(address) {
  const element = document.createElement('iframe')
  const loaded = new Promise((resolve) => element.addEventListener('load', resolve))
  element.src = address
  document.body.append(element)
  await loaded
}

function openWindow(address) {
  globalThis.opened = window.open(address, 'opened')
}

function reachIntoOpened() {
  globalThis.opened.postMessage('hello', '*')
  return { closed: globalThis.opened.closed, frames: globalThis.opened.length }
}

function register(script, scope) {
  return navigator.serviceWorker.register(script, { scope }).then(
    (registration) => registration.scope,
    (error) => error.name,
  )
}

Object.assign(globalThis, { toss, reachInto, ownStores, ask, frame, openWindow, reachIntoOpened, register })
