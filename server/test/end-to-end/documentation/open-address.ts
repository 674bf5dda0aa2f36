// Opens the addresses that a page of the documentation names, at the port of this platform.
import type { Browser, Page } from 'playwright-core'
import { openPage } from '../browser.ts'

export type Requester = { browser: Browser; port: string }

export function openAddress({ browser, port }: Requester, address: string): Promise<Page> {
  const url = new URL(address)
  url.port = port
  return openPage(browser, url.href)
}
