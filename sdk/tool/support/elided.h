// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

namespace CLI {
class App;
}

namespace collet::tool {

/// The treatment of constants whose value the text leaves out, constant({...}).
struct ElidedChoice {
  uint32_t how = COLLET_ELIDED_REFUSE;
  uint64_t seed = 0;  ///< for COLLET_ELIDED_RANDOM
};

/// Declares --elided, which fills `choice`, whose value is the default; it must outlive the parse.
void add_elided_option(CLI::App& verb, ElidedChoice& choice);

}  // namespace collet::tool
