// The frame of the pages for administrators.
import { Outlet } from '@tanstack/react-router'
import { platformLink } from '../../links.ts'
import { Notice } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { usePerson } from '../../shell/person.tsx'
import { Tabs } from '../../shell/tabs.tsx'

const TABS = [
  { text: 'Health', to: platformLink(), is_exact: true },
  { text: 'Nodes', to: platformLink('nodes') },
  { text: 'Regions', to: platformLink('regions') },
  { text: 'Groups', to: platformLink('groups') },
  { text: 'People', to: platformLink('people') },
  { text: 'Sign-in', to: platformLink('sign-in') },
  { text: 'Backups', to: platformLink('backups') },
  { text: 'Jobs', to: platformLink('jobs') },
  { text: 'Audit log', to: platformLink('audit') },
  { text: 'Notices', to: platformLink('notices') },
  { text: 'Settings', to: platformLink('settings') },
]

export default function PlatformFrame() {
  const { is_admin } = usePerson()
  if (!is_admin) {
    return (
      <Page title="Platform">
        <Notice tone="warn">
          These pages are for administrators: people who signed in with the operator's access token, or whom a provider
          of sign-ins names as one.
        </Notice>
      </Page>
    )
  }
  return (
    <>
      <Tabs label="Platform" tabs={TABS} />
      <Outlet />
    </>
  )
}
