/** Souls of agents. */
import { expect } from 'chai';
import { decideSoul } from '../../../commands/agents/souls.ts';
import { ada, given, registered } from '../../support/agent.ts';

describe('agent: persona', () => {
  it('records the length of the persona text', () => {
    expect(decideSoul(given(registered).state, 'new', 'developer')[0]?.data).to.deep.equal({
      ...ada,
      soul_content: 'new',
      template: 'developer',
      previous_length: 4,
    });
  });
});
