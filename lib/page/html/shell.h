// The common frame of all pages: one HTML file that needs nothing else. Styles and scripts come from
// lib/page/html and are compiled into the program; the data are JSON in the page.
//
//   <style>page.css</style> ... <script type="application/json" id="data">{...}</script> <script>base.js map.js ...</script>
//
// Names in the data are a stranger's: in JSON no "<" remains, so that none can end the script, and scripts
// put names into the page as text alone. The page's policy lets it load and send nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mckpt::impl {

// The scripts by their file names.
std::string html_page(std::string_view title, std::string_view json,
                      std::span<const std::string_view> scripts);

// Text as it may appear in HTML and SVG, between tags and in attributes; what escaped() does not print is in
// digits.
std::string html_text(std::string_view text);

// JSON as it may be in a script of a page: with \u003c for "<".
std::string script_json(std::string_view json);

}  // namespace mckpt::impl
