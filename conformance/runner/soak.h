// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// A soak test: what a process does with a backend in a day, in a random order and in little time. A round opens a client, compiles
/// random programs and keeps some of them, runs them on one thread or two, with donated arguments too, keeps and drops
/// buffers of random sizes in any order, and closes the client. Results are compared as for random programs. After each
/// round the process should be as large as after the one before.

namespace collet::conformance {

/// Returns the name "soak/rounds/seed_N" of the case with this seed.
std::string soak_case_name(uint64_t seed);
/// Returns the seed in such a name; nullopt for another name.
std::optional<uint64_t> soak_case_seed(std::string_view name);

/// Runs rounds for so many seconds. Fields of the reply: status, detail (what is wrong or grows), evidence (memory, threads
/// and files after some of the rounds). The same seed makes the same steps; how many there are depends on the time.
Fields run_soak(uint64_t seed, const BackendChoice& backend, double seconds);

}  // namespace collet::conformance
