// Of the page of a device link (page.ts). Without a framework: forms that are shown one after the other.
const device_link_token = decodeURIComponent(location.pathname.split('/').at(-1))
const byId = (id) => document.getElementById(id)
const told = byId('told')
let user_token = null
let verification_id = null

class Refused extends Error {
  constructor({ code, message }) {
    super(message)
    this.code = code
  }
}

async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(user_token === null ? {} : { authorization: `Bearer ${user_token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Refused(answer)
  return answer
}

/** Shows these forms and no others. */
function show(text, ...ids) {
  told.textContent = text
  for (const form of document.forms) form.hidden = !ids.includes(form.id)
  byId(ids[0])?.querySelector('input, select')?.focus()
}

function askWho() {
  show('Log in to go on.', ...['email', 'access'].filter((id) => byId(id) !== null))
}

async function enter() {
  try {
    user_token = (await call('POST', '/auth/tokens/identity', {})).token
  } catch (error) {
    if (error.code !== 'TOKEN_REFRESH_NOT_FOUND') throw error
    askWho()
    return
  }
  const { identity } = await call('GET', '/identity/identities/self/profile')
  const { games, groups, is_cut } = await call('GET', '/cloud/games')
  const roles = new Map(groups.map(({ group_id, role }) => [group_id, role]))
  const mayDevelop = ({ developer }) =>
    identity.is_admin || ['owner', 'developer'].includes(roles.get(developer.group_id))
  const own = games.filter(mayDevelop)
  byId('name').textContent = identity.display_name
  const options = own.map(({ game_id, display_name, developer }) => {
    const option = document.createElement('option')
    option.value = game_id
    option.textContent = `${display_name} (${developer.display_name})`
    return option
  })
  byId('choose').elements.game_id.replaceChildren(...options)
  const more = is_cut ? ' These are your newest games only.' : ''
  show(own.length === 0 ? 'You have no game that a program could be let into.' : `Choose a game.${more}`, 'choose')
}

/** Runs the action of a form. The page shows the error of a refused action, which may be tried again. */
function on(id, act) {
  byId(id)?.addEventListener('submit', (event) => {
    event.preventDefault()
    void attempt(() => act(Object.fromEntries(new FormData(event.target))))
  })
}

async function attempt(act) {
  for (const button of document.querySelectorAll('button')) button.disabled = true
  try {
    await act()
  } catch (error) {
    told.textContent = error.message
  } finally {
    for (const button of document.querySelectorAll('button')) button.disabled = false
  }
}

on('email', async ({ email, 'cf-turnstile-response': client_response }) => {
  const captcha = client_response === undefined ? {} : { captcha: { turnstile: { client_response } } }
  const started = await call('POST', '/auth/identity/email/start-verification', { email, ...captcha })
  verification_id = started.verification_id
  show('A code is on its way.', 'code')
})
on('code', async ({ code }) => {
  const { status } = await call('POST', '/auth/identity/email/complete-verification', { verification_id, code })
  if (status === 'switch_identity') return enter()
  if (status === 'incorrect') throw new Error('This is not the code. Look again.')
  askWho()
  told.textContent = 'This code is not good any more. Ask for another one.'
})
on('access', async ({ access_token }) => {
  await call('POST', '/auth/identity/access-token/complete-verification', { access_token })
  await enter()
})
on('choose', async ({ game_id }) => {
  await call('POST', '/cloud/devices/links/complete', { device_link_token, game_id })
  show('The program is let in. You can close this page.')
})
byId('refuse').addEventListener('click', () =>
  attempt(async () => {
    await call('POST', '/cloud/devices/links/refuse', { device_link_token })
    show('The program is refused. You can close this page.')
  }),
)
void attempt(enter)
