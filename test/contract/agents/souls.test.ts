import { expect } from 'chai';
import { soulPutResponse, soulResponse, soulTemplatesResponse } from '../../../shared/contract/agents/souls.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

describe('soul', () => {
  const world = fixture(startAgentsWorld);

  const { ask, create, get, activities } = world;

  it('can be written and read', async () => {
    const { id, name } = await create();
    const path = `/api/agents/${id}/soul`;
    const body = conforms(soulResponse, await ask('GET', path));
    expect(body).to.deep.include({ soul_content: '', source: 'none', agent: { id, name, role: 'coder' } });
    const put = await ask('PUT', path, { soul_content: 'be kind' });
    conforms(soulPutResponse, put);
    expect(put.body).to.include({ success: true, soul_content: 'be kind' });
    expect((await ask('GET', `/api/agents/${name}/soul`)).body).to.include({
      soul_content: 'be kind',
      source: 'database',
    });
    expect((await get(id)).soul_content).to.equal('be kind');
    const [activity] = await activities('agent_soul_updated', id);
    expect(activity).to.include({ actor: 'api' });
    expect(activity.metadata).to.deep.equal({
      content_length: 7,
      previous_content_length: 0,
      saved_to_workspace: false,
    });
  });

  it('can be loaded from a template, with its placeholders filled', async () => {
    const { id, name } = await create();
    const put = await ask('PUT', `/api/agents/${id}/soul`, { template_name: 'developer' });
    expect(put.body.soul_content).to.include(`You are ${name}, coder.`).and.not.include('{{');
    expect((await activities('agent_soul_updated', id))[0].metadata).to.include({ template_used: 'developer' });
  });

  it('templates can be listed and shown', async () => {
    const { id } = await create();
    const path = `/api/agents/${id}/soul`;
    const body = conforms(soulTemplatesResponse, await ask('PATCH', path));
    expect(body.templates.map((one: { name: string }) => one.name)).to.deep.equal(
      (await ask('GET', path)).body.available_templates,
    );
    const one = await ask('PATCH', `${path}?template=reviewer`, { ignored: true });
    conforms(soulTemplatesResponse, one);
    expect(one.body).to.include({ template_name: 'reviewer' });
    expect(one.body.content).to.include('{{AGENT_NAME}}');
    expect((await ask('PATCH', `${path}?template=unknown`)).status).to.equal(404);
    expect((await ask('PATCH', `${path}?template=../etc`)).status).to.equal(400);
    expect((await ask('PATCH', '/api/agents/nobody/soul')).status).to.equal(404);
  });

  it('is rejected if invalid', async () => {
    const { id } = await create();
    const path = `/api/agents/${id}/soul`;
    for (const body of [
      undefined,
      '{',
      {},
      { soul_content: 5 },
      { soul_content: null },
      { soul_content: 'x'.repeat(200_001) },
      { soul_content: '\ud800' },
      { template_name: '../x' },
    ])
      expect((await ask('PUT', path, body)).status, JSON.stringify(body)?.slice(0, 50)).to.equal(400);
    expect((await ask('PUT', path, { template_name: 'unknown' })).status).to.equal(404);
    expect((await ask('PUT', '/api/agents/nobody/soul', { soul_content: 'x' })).status).to.equal(404);
    expect((await ask('GET', '/api/agents/nobody/soul')).status).to.equal(404);
    expect((await ask('PUT', path, { soul_content: '' })).body).to.include({ success: true, soul_content: '' });
  });
});
