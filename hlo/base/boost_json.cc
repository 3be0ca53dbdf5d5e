// SPDX-License-Identifier: Apache-2.0
// The functions of Boost.JSON, for all that read JSON: the library is used without one of its own.
#include <boost/json/src.hpp>
