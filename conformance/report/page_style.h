// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace collet::conformance {

/// The style sheet of self-contained pages: page.css, compiled in by the build.
extern const char kPageStyle[];

}  // namespace collet::conformance
