// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace collet::conformance {

/// The style of the pages that stand alone: page.css, put here by the build.
extern const char kPageStyle[];

}  // namespace collet::conformance
