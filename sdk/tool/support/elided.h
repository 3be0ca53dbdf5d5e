// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

namespace CLI {
class App;
}

namespace collet::tool {

/// How to treat constants whose value the text omits: constant({...}).
struct ElidedChoice {
  uint32_t how = COLLET_ELIDED_REFUSE;
  uint64_t seed = 0;  ///< for COLLET_ELIDED_RANDOM
};

/// Declares --elided, which sets `choice`. The initial value of `choice` is the default; it must outlive parsing.
void add_elided_option(CLI::App& verb, ElidedChoice& choice);

}  // namespace collet::tool
