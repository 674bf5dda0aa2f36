// A game of reaction: the light turns green after a while, and the time until the click counts.
const WAIT_MS_MIN = 1000
const WAIT_MS_MAX = 4000

const status = document.getElementById('state')
const light = document.getElementById('light')
const best = document.getElementById('best')

let timer
let green_since = null
let best_ms = Number.POSITIVE_INFINITY

light.addEventListener('click', () => {
  if (light.className === 'wait') return finish('Too early.')
  if (green_since === null) return wait()
  const time_ms = Math.round(performance.now() - green_since)
  best_ms = Math.min(best_ms, time_ms)
  best.textContent = `${best_ms} ms`
  finish(`${time_ms} ms.`)
})

function wait() {
  show('wait', 'Wait …', 'Not yet.')
  timer = setTimeout(
    () => {
      green_since = performance.now()
      show('go', 'Now!', 'Click.')
    },
    WAIT_MS_MIN + Math.random() * (WAIT_MS_MAX - WAIT_MS_MIN),
  )
}

function finish(text) {
  clearTimeout(timer)
  green_since = null
  show('', 'Again', text)
}

function show(class_name, label, text) {
  light.className = class_name
  light.textContent = label
  status.textContent = text
}
