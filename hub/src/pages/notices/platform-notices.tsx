// The targets of notices of the platform, for administrators.
import { HOME } from '../../links.ts'
import { Notices } from './notices.tsx'

export default function PlatformNotices() {
  const crumbs = [{ text: 'Home', to: HOME }]
  return <Notices scope={{ query: {}, option: ' --platform', crumbs, may_change: true }} />
}
