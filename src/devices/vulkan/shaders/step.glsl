// SPDX-License-Identifier: Apache-2.0
#include "rows.glsl"
// The inputs of a step of every recurrent layer. `gates` holds the products with x plus the biases, `weight` the weights
// of the state `h`. T2 is the type of the weights.

layout(local_size_x = 256) in;
layout(constant_id = 4) const bool kStored = false;  // whether y takes this step
layout(constant_id = 5) const bool kFours = false;   // state and weights are read in fours
layout(binding = 0) readonly buffer G { float gates[]; };
layout(binding = 1) readonly buffer W { T2 weight[]; };
layout(binding = 1) readonly buffer W4 { T2X4 weight4[]; };
layout(binding = 3) readonly buffer H { float h[]; };
layout(binding = 3) readonly buffer H4 { vec4 h4[]; };
