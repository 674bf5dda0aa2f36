// The health of the platform.
import { Page } from '../../parts/page.tsx'

export default function Health() {
  return (
    <Page title="Health">
      <p>The platform runs.</p>
    </Page>
  )
}
