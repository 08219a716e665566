/** The contract of delivery, held by every way to read events. */
import { deliveryContract } from './delivery-contract.ts';
import { gateway } from './delivery-gateway.ts';
import { many, post, sse } from './delivery-streams.ts';

for (const connection of [sse, gateway, post, many]) deliveryContract(connection);
