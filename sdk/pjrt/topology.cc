// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"

namespace collet::pjrt {

PJRT_Error* call(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = &args.client->topology;
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_Destroy_Args&) {
  return nullptr;  // the only ones there are belong to clients
}

PJRT_Error* call(PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = args.topology->platform.c_str();
  args.platform_name_size = args.topology->platform.size();
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  args.platform_version = args.topology->version.c_str();
  args.platform_version_size = args.topology->version.size();
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  args.descriptions = args.topology->descriptions.data();
  args.num_descriptions = args.topology->descriptions.size();
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_Fingerprint_Args& args) {
  args.fingerprint = 14695981039346656037ull;
  for (const std::string* text : {&args.topology->platform, &args.topology->version})
    for (const char c : *text) args.fingerprint = (args.fingerprint ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return nullptr;
}

}  // namespace collet::pjrt
