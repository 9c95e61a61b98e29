// Package arch holds the rules that the module's source keeps, as a test: who may
// import whom, and what no file may do. It has no other content.
package arch
