// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "sdk/pjrt/api/table.h"

/// \file
/// The files that belong to the plugin, and the PJRT table that they give.

namespace collet::tensorflow {

/// What belongs to the plugin. It is in a folder that has the plugin's name and lies beside the folder of the plugin:
/// tensorflow-plugins/libacme_tensorflow.so and acme_tensorflow/{settings.txt, lib/libcollet_pjrt.so}. In a build tree
/// there is no such folder, and the libraries are beside the plugin.
class Package {
 public:
  /// Returns the package of the plugin that this code is part of. The PJRT library is loaded by the first call.
  static const Package& get();

  /// Empty, or why the package cannot be used.
  const std::string& error() const { return error_; }
  /// TensorFlow's name of the device: the platform's in capital letters.
  const std::string& device_type() const { return device_type_; }
  /// The table of the PJRT library, in which Client_Create adds the options of the package. Null if there is an error.
  const PJRT_Api* api() const;
  /// Options of clients.
  const std::map<std::string, std::string>& options() const { return options_; }

 private:
  Package();
  std::string load();
  std::string read_settings(const std::string& path);

  std::string error_;
  std::string device_type_ = "COLLET";
  std::map<std::string, std::string> options_;
};

/// Returns the client that TensorFlow has created by the table; null if it has not.
PJRT_Client* created_client();

/// Returns why the last client could not be created; empty if it could.
const std::string& creation_error();

/// Returns the message of an error of the table.
std::string message_of(PJRT_Error* error);

}  // namespace collet::tensorflow
