// Saves rows as a CSV file by the download of the browser.
import { csvCell } from '@musterhost/contract/visible-text'

export function saveCsv(file_name: string, rows: readonly (readonly string[])[]): void {
  const text = rows.map((row) => row.map(csvCell).join(',')).join('\r\n')
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([`${text}\r\n`], { type: 'text/csv' }))
  link.download = file_name
  link.click()
  URL.revokeObjectURL(link.href)
}
