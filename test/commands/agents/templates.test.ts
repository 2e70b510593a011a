import { expect } from 'chai';
import fc from 'fast-check';
import { fillSoul, SOUL_TEMPLATES, soulTemplate } from '../../../commands/agents/souls.ts';
import { configFor, templateConfig } from '../../../commands/agents/templates.ts';

const TEMPLATE_IDS = [
  'orchestrator',
  'developer',
  'specialist-dev',
  'reviewer',
  'researcher',
  'content-creator',
  'security-auditor',
];
const keys = fc.dictionary(fc.constantFrom('model', 'identity', 'a', 'b', 'c'), fc.jsonValue());

describe('agent templates', () => {
  it('are the seven documented ones, with the documented values', () => {
    for (const id of TEMPLATE_IDS) expect(templateConfig(id, 'ada'), id).to.have.property('model');
    expect(templateConfig('developer', 'ada')).to.deep.equal({
      model: { primary: 'anthropic/claude-sonnet-4-20250514', fallbacks: ['anthropic/claude-haiku-4-5'] },
      identity: { name: 'ada', theme: 'builder engineer', emoji: '🛠️' },
      sandbox: { mode: 'all', workspaceAccess: 'rw', scope: 'agent', docker: { network: 'bridge' } },
      tools: { allow: [], deny: [] },
      memorySearch: { sources: ['memory'] },
    });
    expect(templateConfig('orchestrator', 'ada')).to.deep.include({ subagents: { allowAgents: ['*'] } });
    expect(templateConfig('reviewer', 'ada')).to.have.nested.property('sandbox.workspaceAccess', 'ro');
  });

  it('are not found under inherited property names', () => {
    for (const name of ['toString', '__proto__', 'constructor', ''])
      expect(templateConfig(name, 'ada'), name).to.equal(undefined);
  });

  it('are a new object for each call', () => {
    expect(templateConfig('developer', 'a')).not.to.equal(templateConfig('developer', 'a'));
  });
});

describe('config of a new agent', () => {
  it('without a template: config, then gateway_config over it', () => {
    fc.assert(
      fc.property(keys, keys, (config, gateway_config) => {
        expect(configFor({ name: 'x', config, gateway_config })).to.deep.equal({
          config: { ...config, ...gateway_config },
          template: null,
        });
      }),
    );
  });

  it('with an unknown template: config alone', () => {
    fc.assert(
      fc.property(keys, keys, (config, gateway_config) => {
        const merged = configFor({ name: 'x', template: 'unknown', config, gateway_config });
        expect(merged).to.deep.equal({ config: { ...config }, template: null });
      }),
    );
  });

  it('with a template: the given config overrides the template’s keys', () => {
    fc.assert(
      fc.property(fc.constantFrom(...TEMPLATE_IDS), keys, (template, config) => {
        const merged = configFor({ name: 'x', template, config });
        expect(merged).to.deep.equal({ config: { ...templateConfig(template, 'x'), ...config }, template });
      }),
    );
  });

  it('with a template: only selected values of gateway_config apply', () => {
    const { config } = configFor({
      name: 'x',
      template: 'developer',
      gateway_config: {
        model: { primary: 'p', fallbacks: ['ignored'] },
        identity: { emoji: 'e', theme: 't', name: 'ignored' },
        sandbox: { mode: 'm', workspaceAccess: 'w', scope: 'ignored', docker: { network: 'n' } },
        subagents: { allowAgents: ['a'] },
        ignored: true,
      },
    });
    expect(config).to.deep.equal({
      model: { primary: 'p', fallbacks: ['anthropic/claude-haiku-4-5'] },
      identity: { name: 'x', theme: 't', emoji: 'e' },
      sandbox: { mode: 'm', workspaceAccess: 'w', scope: 'agent', docker: { network: 'n' } },
      tools: { allow: [], deny: [] },
      memorySearch: { sources: ['memory'] },
      subagents: { allowAgents: ['a'] },
    });
  });
});

describe('persona templates', () => {
  it('list their name, description and size', () => {
    expect(SOUL_TEMPLATES.map((template) => template.name)).to.have.members(TEMPLATE_IDS);
    for (const { name, description, size } of SOUL_TEMPLATES) {
      expect(soulTemplate(name)).to.have.length(size);
      expect(description, name).to.match(/^[A-Z]/);
    }
    expect(soulTemplate('toString')).to.equal(undefined);
  });

  it('replace the agent’s name and the time, and nothing else', () => {
    const text = '{{AGENT_NAME}} {{AGENT_ROLE}} {{TIMESTAMP}} {{OTHER}} {{AGENT_NAME}}';
    // Values that look like replacement patterns or placeholders stay as they are.
    expect(fillSoul(text, { name: '$& {{AGENT_ROLE}}', role: '$1' }, 0)).to.equal(
      '$& {{AGENT_ROLE}} $1 1970-01-01T00:00:00.000Z {{OTHER}} $& {{AGENT_ROLE}}',
    );
  });
});
