// Adobe's runtime library: it reads a manifest, deploys the package in it and calls what it deployed.
const assert = require('node:assert')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const runtime = require('@adobe/aio-lib-runtime')

const apihost = process.env.WHISK_HOST
const apiKey = process.env.WHISK_KEY
const quiet = () => {}

async function main () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'manifest-'))
  const source = path.join(folder, 'hello.js')
  fs.writeFileSync(source, 'exports.main = params => params // behave: greet\n')
  const packages = {
    shop: {
      actions: { hello: { function: source, runtime: 'nodejs:20', web: 'yes', inputs: { name: 'manifest' }, limits: { timeout: 5000 } } },
      sequences: { chain: { actions: 'hello' } },
      triggers: { bell: {} },
      rules: { ring: { trigger: 'bell', action: 'hello' } }
    }
  }
  const ow = await runtime.init({ apihost, api_key: apiKey, apiversion: 'v1', namespace: 'guest' })
  const entities = runtime.utils.processPackage(packages, {}, {}, {}, false, { apihost, apiKey, namespace: 'guest' })
  await runtime.utils.deployPackage(entities, ow, quiet)
  console.log('ok deploy a manifest')

  const record = await ow.actions.invoke({ name: 'shop/hello', blocking: true })
  assert.deepEqual(record.response.result, { greeting: 'hello manifest' })
  console.log('ok invoke')
  const chained = await ow.actions.invoke({ name: 'shop/chain', blocking: true, result: true })
  assert.deepEqual(chained, { greeting: 'hello manifest' })
  console.log('ok invoke a sequence')

  const lines = []
  await runtime.printActionLogs({ ow: { apihost, auth: apiKey, namespace: 'guest', apiversion: 'v1' } }, line => lines.push(line), 10, [])
  assert(lines.some(line => /greeted manifest/.test(line)), lines.join('\n'))
  console.log('ok read logs')

  await runtime.utils.undeployPackage(entities, ow, quiet)
  assert.deepEqual(await ow.actions.list(), [])
  console.log('ok undeploy')
  fs.rmSync(folder, { recursive: true })
  console.log('all steps passed')
}

main().catch(error => { console.error(error); process.exitCode = 1 })
