#pragma once

/// All of Moka's C++ interface.
#include "moka/cache.h"
#include "moka/compiler.h"
#include "moka/compute_plan.h"
#include "moka/description.h"
#include "moka/error.h"
#include "moka/feature.h"
#include "moka/model.h"
#include "moka/model_structure.h"
#include "moka/multi_array.h"
#include "moka/program.h"
#include "moka/rates.h"
#include "moka/stream.h"
