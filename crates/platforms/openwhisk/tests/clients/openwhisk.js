// The unmodified npm client `openwhisk` against a server of ours. Each step throws if the answer is not the one that
// OpenWhisk would give.
const assert = require('node:assert')
const openwhisk = require('openwhisk')

const ow = openwhisk({ apihost: process.env.WHISK_HOST, api_key: process.env.WHISK_KEY })
const code = behaviour => `function main(params) { return params } // behave: ${behaviour}`
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

async function refused (promise, statusCode) {
  const error = await promise.then(() => assert.fail(`not refused with ${statusCode}`), error => error)
  assert.equal(error.statusCode, statusCode, String(error))
  return error
}

async function ended (activationId) {
  for (let tries = 0; tries < 200; tries++) {
    const activation = await ow.activations.get(activationId).catch(error => {
      if (error.statusCode !== 404) throw error
    })
    if (activation) return activation
    await pause(20)
  }
  assert.fail(`${activationId} never ended`)
}

const steps = {
  async 'create an action' () {
    const action = await ow.actions.create({ name: 'hello', action: code('greet') })
    assert.equal(action.version, '0.0.1')
    assert.equal(action.exec.kind, 'nodejs:20')
    await refused(ow.actions.create({ name: 'hello', action: code('greet') }), 409)
  },
  async 'update it' () {
    const action = await ow.actions.update({
      name: 'hello', action: code('greet'), limits: { timeout: 1000, memory: 128 }, params: { name: 'bound' }, annotations: { by: 'test' }
    })
    assert.equal(action.version, '0.0.2')
    assert.deepEqual([action.limits.timeout, action.limits.memory], [1000, 128])
  },
  async 'an archive' () {
    const zip = Buffer.from('504b0304', 'hex')
    const action = await ow.actions.update({ name: 'zipped', action: zip, kind: 'python:default' })
    assert.equal(action.exec.binary, true)
  },
  async 'invoke and wait for the record' () {
    const activation = await ow.actions.invoke({ name: 'hello', blocking: true, params: { name: 'you' } })
    assert.deepEqual(activation.response.result, { greeting: 'hello you' })
    assert.equal(activation.response.success, true)
    assert.match(activation.activationId, /^[0-9a-f]{32}$/)
  },
  async 'invoke for the result alone' () {
    assert.deepEqual(await ow.actions.invoke({ name: 'hello', blocking: true, result: true }), { greeting: 'hello bound' })
  },
  async 'invoke without waiting' () {
    const { activationId } = await ow.actions.invoke({ name: 'hello', params: { name: 'later' } })
    const activation = await ended(activationId)
    assert.deepEqual(activation.response.result, { greeting: 'hello later' })
    assert.match((await ow.activations.logs(activationId)).logs[0], /stdout: greeted later/)
    assert.deepEqual((await ow.activations.result(activationId)).result, { greeting: 'hello later' })
  },
  async 'invoke something that fails' () {
    await ow.actions.create({ name: 'error', action: code('error') })
    const error = await refused(ow.actions.invoke({ name: 'error', blocking: true }), 502)
    assert.equal(error.error.response.status, 'application error')
    await ow.actions.create({ name: 'throw', action: code('throw') })
    const thrown = await refused(ow.actions.invoke({ name: 'throw', blocking: true }), 502)
    assert.equal(thrown.error.response.status, 'action developer error')
  },
  async 'invoke something that exceeds its time' () {
    await ow.actions.create({ name: 'slow', action: code('sleep'), limits: { timeout: 100 } })
    const error = await refused(ow.actions.invoke({ name: 'slow', blocking: true, params: { ms: 10000 } }), 502)
    assert.match(error.error.response.result.error, /exceeded its time limits of 100 milliseconds/)
  },
  async 'invoke what is not there' () {
    await refused(ow.actions.invoke({ name: 'nobody' }), 404)
  },
  async 'list and read' () {
    const names = (await ow.actions.list()).map(action => action.name)
    assert.deepEqual(names.sort(), ['error', 'hello', 'slow', 'throw', 'zipped'])
    assert.equal((await ow.actions.list({ limit: 2, skip: 1 })).length, 2)
    assert.match((await ow.actions.get('hello')).exec.code, /greet/)
    assert.deepEqual(await ow.namespaces.list(), ['guest'])
  },
  async 'list activations' () {
    const all = await ow.activations.list({ limit: 200 })
    assert.equal(all[0].name, 'slow')
    const some = await ow.activations.list({ name: 'hello' })
    assert.equal(some.length, 3)
    assert(some.every(activation => activation.name === 'hello'))
  },
  async 'packages and bindings' () {
    await ow.packages.create({ name: 'demo', package: { publish: true, parameters: [{ key: 'name', value: 'package' }] } })
    await ow.actions.create({ name: 'demo/hello', action: code('greet') })
    assert.deepEqual(await ow.actions.invoke({ name: 'demo/hello', blocking: true, result: true }), { greeting: 'hello package' })
    await ow.packages.update({ name: 'bound', package: { binding: { namespace: '_', name: 'demo' }, parameters: [{ key: 'name', value: 'binding' }] } })
    assert.deepEqual(await ow.actions.invoke({ name: '/_/bound/hello', blocking: true, result: true }), { greeting: 'hello binding' })
    assert.equal((await ow.packages.get('demo')).actions.length, 1)
    assert.equal((await ow.packages.list()).length, 2)
  },
  async 'sequences' () {
    await ow.actions.create({ name: 'chain', sequence: ['/guest/demo/hello', '/guest/hello'] })
    const activation = await ow.actions.invoke({ name: 'chain', blocking: true })
    assert.deepEqual(activation.response.result, { greeting: 'hello bound' })
    assert.equal(activation.logs.length, 2)
  },
  async 'triggers and rules' () {
    await ow.triggers.create({ name: 'bell', trigger: { parameters: [{ key: 'name', value: 'bell' }] } })
    await ow.rules.create({ name: 'ring', trigger: 'bell', action: 'hello' })
    assert.equal((await ow.rules.get('ring')).status, 'active')
    const { activationId } = await ow.triggers.invoke({ name: 'bell', params: { x: 1 } })
    const line = JSON.parse((await ended(activationId)).logs[0])
    assert.deepEqual((await ended(line.activationId)).response.result, { greeting: 'hello bell' })
    await ow.rules.disable({ name: 'ring' })
    assert.equal((await ow.rules.get('ring')).status, 'inactive')
    await ow.rules.enable({ name: 'ring' })
    assert.equal((await ow.rules.list()).length, 1)
    assert.equal((await ow.triggers.list()).length, 1)
    await ow.rules.delete('ring')
    await ow.triggers.delete('bell')
  },
  async 'delete' () {
    for (const name of ['chain', 'demo/hello', 'hello', 'error', 'throw', 'slow', 'zipped']) await ow.actions.delete(name)
    for (const name of ['bound', 'demo']) await ow.packages.delete(name)
    assert.deepEqual(await ow.actions.list(), [])
    await refused(ow.actions.get('hello'), 404)
  },
  async 'a wrong key' () {
    const stranger = openwhisk({ apihost: process.env.WHISK_HOST, api_key: 'nobody:nothing' })
    await refused(stranger.actions.list(), 401)
  }
}

async function main () {
  for (const [name, step] of Object.entries(steps)) {
    await step().catch(error => { error.message = `${name}: ${error.message}`; throw error })
    console.log(`ok ${name}`)
  }
  console.log('all steps passed')
}

main().catch(error => { console.error(error); process.exitCode = 1 })
