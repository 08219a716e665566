/** The model runner under the contract of all runners. */
import { runnerContract } from '../contract/runner-contract.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { providerAt } from './model-bench.ts';
import { modelUnderTest } from './model-under-test.ts';

runnerContract('model', async () => {
  const fake = await startFakeProvider();
  return modelUnderTest(fake, providerAt(fake.baseUrl), 'custom/fake-model');
});
