// Package helpers has no row in the table of imports.
package helpers // want package_names imports
