// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/list_backend.hpp>
#include <memory>

namespace acme {

// Makes one command list of a whole program.
std::shared_ptr<const collet::kernel::ProgramCompiler> compiler();

}  // namespace acme
