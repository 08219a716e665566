/** The contract of delivery, held by every way to read events. */

import { gateway, many, post, sse } from './delivery-connections.ts';
import { deliveryContract } from './delivery-contract.ts';

deliveryContract(sse);
deliveryContract(gateway);
deliveryContract(post);
deliveryContract(many);
