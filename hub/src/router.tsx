// The pages by address. Each page is a module of its own, loaded when it is opened first.
import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  Link,
  lazyRouteComponent,
} from '@tanstack/react-router'
import { HOME, SIGN_IN } from './links.ts'
import { gamePages } from './pages/game/pages.ts'
import { groupPages } from './pages/group/pages.ts'
import { namespacePages } from './pages/namespace/pages.ts'
import { topPages } from './pages/pages.ts'
import { platformPages } from './pages/platform/pages.ts'
// Read before the router starts.
import './pages/sign-in/returned.ts'
import { Button } from './parts/button.tsx'
import { Loading, Notice } from './parts/notice.tsx'
import { Page } from './parts/page.tsx'
import { Layout, Root } from './shell/layout.tsx'
import type { PageEntry } from './shell/page-entry.ts'

const SignIn = lazyRouteComponent(() => import('./pages/sign-in/sign-in.tsx'))
const ProviderReturn = lazyRouteComponent(() => import('./pages/sign-in/provider-return.tsx'))
const root = createRootRoute({ component: Root, notFoundComponent: NotFound, errorComponent: Broken })
const layout = createRoute({ getParentRoute: () => root, id: 'layout', component: Layout })

/** Pages that share a frame, which is loaded with the first of them. */
function framed(path: string, load: PageEntry['load'], pages: readonly PageEntry[]) {
  const frame = createRoute({ getParentRoute: () => layout, path, component: lazyRouteComponent(load) })
  return frame.addChildren(
    pages.map((page) =>
      createRoute({ getParentRoute: () => frame, path: page.path, component: lazyRouteComponent(page.load) }),
    ),
  )
}

const tree = root.addChildren([
  createRoute({ getParentRoute: () => root, path: SIGN_IN, component: SignIn }),
  createRoute({ getParentRoute: () => root, path: `${SIGN_IN}/$provider`, component: ProviderReturn }),
  layout.addChildren([
    ...topPages.map(({ path, load }) =>
      createRoute({ getParentRoute: () => layout, path, component: lazyRouteComponent(load) }),
    ),
    framed('/games/$game_id', () => import('./pages/game/frame.tsx'), gamePages),
    framed('/games/$game_id/namespaces/$namespace_id', () => import('./pages/namespace/frame.tsx'), namespacePages),
    framed('/groups/$group_id', () => import('./pages/group/frame.tsx'), groupPages),
    framed('/platform', () => import('./pages/platform/frame.tsx'), platformPages),
  ]),
])

export const router = createRouter({
  routeTree: tree,
  defaultPreload: 'intent',
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: Broken,
  scrollRestoration: true,
})

function NotFound() {
  return (
    <Page title="There is no such page">
      <p>
        The address may be mistyped, or what it names was deleted. <Link to={HOME}>Go to the home page.</Link>
      </p>
    </Page>
  )
}

function Broken({ error }: ErrorComponentProps) {
  return (
    <Page title="This page has failed">
      <Notice tone="bad" actions={<Button onClick={() => location.reload()}>Reload</Button>}>
        <p>{error instanceof Error ? error.message : String(error)}</p>
      </Notice>
    </Page>
  )
}
