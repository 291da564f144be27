// Expectations about text.
#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace mallard::demo {

inline testing::AssertionResult has(const std::string& text, const std::string& part)
{
    if (text.find(part) != std::string::npos)
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << "there is no \"" << part << "\" in \"" << text << '"';
}

inline testing::AssertionResult matches(const std::string& text, const std::string& expression)
{
    if (std::regex_match(text, std::regex(expression)))
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << "\"" << text << "\" is not like \"" << expression << '"';
}

} // namespace mallard::demo
